"""What memories cost from 500 to 500,000 facts, each against plain floors of the same run. See README.md."""
