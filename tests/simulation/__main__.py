from simulation.command import main

main()
