"""Reports of measurements: results files, tables for a terminal, pictures, and the reference results of a device."""
