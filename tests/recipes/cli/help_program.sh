"$elmgraft"
