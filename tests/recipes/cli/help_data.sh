"$elmgraft" data --help
