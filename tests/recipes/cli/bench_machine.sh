# The forms; what stands in them is the machine's.
"$elmgraft" bench bench.what=machine | sed 's/  .*//' | uniq
"$elmgraft" bench bench.what=machine --json | sed -n 's/^    "\([a-z_]*\)":.*/\1/p'
"$elmgraft" bench bench.what=machine --json | grep -A 2 '"name": "reference"' | sed 's/^ *//'
"$elmgraft" bench bench.what=everything
