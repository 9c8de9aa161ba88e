not a directory
