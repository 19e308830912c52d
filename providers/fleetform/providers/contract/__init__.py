"""What every provider promises: values it reports, calls it answers, errors it raises."""
