"$elmgraft" evaluate model.path=nowhere
