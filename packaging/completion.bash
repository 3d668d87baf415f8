# Read by bash-completion at the first Tab after `mcfd`; the command itself knows its words.
eval "$(_MCFD_COMPLETE=bash_source mcfd)"
