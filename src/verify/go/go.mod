module badgeverify

go 1.19
