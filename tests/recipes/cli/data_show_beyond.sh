echo "once upon a time" > story.txt
"$elmgraft" data story.txt data.show=2
