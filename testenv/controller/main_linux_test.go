package controller

//machineadm:alone

import (
	"testing"

	"github.com/machineadm/machineadm/testenv/management"
)

func TestMain(m *testing.M) { management.Main(m) }
