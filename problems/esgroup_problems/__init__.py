"""The problem zoo: functions and simulators to try searches on. Nothing in it yet."""
