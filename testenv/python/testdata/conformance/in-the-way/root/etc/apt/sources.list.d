a file where a directory belongs
