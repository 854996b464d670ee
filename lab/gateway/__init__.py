"""The model endpoint of a trial: records every exchange, classifies it and answers by policy."""
