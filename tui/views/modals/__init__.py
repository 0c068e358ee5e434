"""What is laid over the pages for a moment: questions, help, panels."""
