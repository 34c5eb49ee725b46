"""What all kernels stand on: the columns of their arrays, keyed draws, vectors, matchings."""
