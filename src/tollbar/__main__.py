from tollbar.cli import main

main()
