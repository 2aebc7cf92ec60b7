"""The judge as an HTTP service for jobs in other frameworks, in containers or on other machines."""
