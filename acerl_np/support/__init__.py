"""What every room uses: errors, kinds of numbers, files, worker threads, printed tables, compiled code."""
