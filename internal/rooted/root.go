package rooted

import (
	"errors"
	"fmt"
	"io"
)

// ReadFile returns the contents of a regular file of at most limit bytes.
func (r *Root) ReadFile(name string, limit int64) ([]byte, error) {
	file, err := r.OpenFile(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("the file is larger than %d bytes", limit)
	}
	return data, errors.Join(err, file.Close())
}
