"$elmgraft" inspect --help
