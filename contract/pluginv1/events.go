package pluginv1

// sequence checks the order of the events of one Apply.
type sequence struct {
	inHand   string          // the ID of the change that is started and not done
	started  map[string]bool // every change that was started
	warnings int
}

// take checks the next event and reports whether to pass it on.
func (s *sequence) take(event Event) (pass bool, err error) {
	switch e := event.(type) {
	case Started:
		return true, s.start(e.Change)
	case Changed:
		if s.inHand == "" || e.ID != s.inHand {
			return false, breach("P-22", "Apply sent changed for %q, which is not the change in hand (%q)", cut(e.ID, MaxTextBytes), s.inHand)
		}
		s.inHand = ""
	case Warning:
		s.warnings++
		return s.warnings <= MaxWarnings, nil
	case Finished:
		return true, s.finish(e)
	case nil: // an event of a later version
		return false, nil
	}
	return true, nil
}

func (s *sequence) start(c Change) error {
	if err := checkChange("Apply", c); err != nil {
		return err
	}
	switch {
	case s.started[c.ID]:
		return breach("P-22", "Apply sent started twice for the change %q", c.ID)
	case s.inHand != "":
		return breach("P-22", "Apply sent started for %q before changed for %q", c.ID, s.inHand)
	case len(s.started) == MaxChanges:
		return breach("P-31", "Apply started more than %d changes", MaxChanges)
	}
	if s.started == nil {
		s.started = map[string]bool{}
	}
	s.inHand, s.started[c.ID] = c.ID, true
	return nil
}

func (s *sequence) finish(f Finished) error {
	if s.inHand != "" && f.Error == nil && !f.Stopped { // Stop may end a change that waits (P-27)
		return breach("P-22", "Apply sent finished without an error, and neither changed nor an error for the change %q", s.inHand)
	}
	return checkChanges("finished", f.Deferred)
}

// omitted returns a warning with the number of warnings that were not passed on.
func (s *sequence) omitted() (Warning, bool) {
	more := s.warnings - MaxWarnings
	return moreWarnings(more), more > 0
}
