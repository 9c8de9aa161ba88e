package machine

func (*FS) destination(string) (string, error) { return "", ErrUnsupported }

func (*FS) reaches(string, []string) (string, error) { return "", ErrUnsupported }
