"""What several commands share: options, inputs, outputs, tables, progress."""
