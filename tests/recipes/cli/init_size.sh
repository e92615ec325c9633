"$elmgraft" init init.size=270 init.output=x
