"""What tests need of the machine: disks, memory, patience, kernels, Spark."""
