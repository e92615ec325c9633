"$elmgraft" inspect nowhere
