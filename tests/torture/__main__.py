from torture.command import main

main()
