"""What a GPU says of itself at one tick, from whatever source, and how it becomes rows."""
