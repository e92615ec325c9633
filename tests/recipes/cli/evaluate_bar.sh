# On a terminal a bar says how far it is, and leaves no trace; in a pipe there is none.
. "$root/tests/recipes/cli/tiny.lib"
make_model && make_rows && make_recipe
i=0
while [ $i -lt 12 ]; do cat val.jsonl val.jsonl > more && mv more val.jsonl; i=$((i + 1)); done
script -qec "'$elmgraft' evaluate my.yaml evaluate.data=val.jsonl evaluate.limit=9000 \
    compute.threads=1" terminal < /dev/null > /dev/null
tr '\r' '\n' < terminal | sed -n 's/ [0-9,]* tok.*//; s/[0-9][0-9,]*\//N\//; s/[#-]\{24\}/BAR/p' | sort -u
"$elmgraft" evaluate my.yaml evaluate.data=val.jsonl evaluate.limit=100 > table 2> log
cat log
