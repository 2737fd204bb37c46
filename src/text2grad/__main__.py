"""`python -m text2grad`, and so `accelerate launch -m text2grad`."""

from text2grad.cli.app import main

if __name__ == "__main__":
    main()
