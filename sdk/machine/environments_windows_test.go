package machine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machine"
)

// asService runs this program as a service of the tests: it writes its environment to the file of the next argument, which has
// the name of the service.
const asService = "machineadm-service"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asService {
		name := strings.TrimSuffix(filepath.Base(os.Args[2]), ".txt")
		if err := svc.Run(name, probe(os.Args[2])); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// probe is the service, by the file that it writes.
type probe string

// Execute implements svc.Handler.
func (p probe) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	if err := os.WriteFile(string(p), []byte(strings.Join(os.Environ(), "\n")), 0o600); err != nil {
		return true, 1
	}
	status <- svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	for request := range requests {
		if request.Cmd == svc.Stop {
			break
		}
	}
	return false, 0
}

// realService installs the service. The returned function returns the environment that it was started with.
func realService(t *testing.T, name string) (machine.Services, func() []string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seen := filepath.Join(os.TempDir(), name+".txt")
	manager, err := mgr.Connect()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		require.Missing(t, "the rights of an administrator")
	}
	if err != nil {
		t.Fatal(err)
	}
	service, err := manager.CreateService(name, program, mgr.Config{StartType: mgr.StartManual}, asService, seen)
	if err != nil {
		t.Fatal(err)
	}
	m, closeMachine, err := machine.New("", "", target.Target{OS: "windows"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(m.Services.Do(context.Background(), name, machine.Stop), service.Delete(), service.Close(),
			manager.Disconnect(), closeMachine())
		if removal := os.Remove(seen); !errors.Is(removal, os.ErrNotExist) {
			err = errors.Join(err, removal)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return m.Services, func() []string {
		t.Helper()
		text, err := os.ReadFile(seen)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(string(text), "\n")
	}
}

// TestServiceEnvironment: entries are read back, and an empty list removes the value.
func TestServiceEnvironment(t *testing.T) {
	const name = "machineadm-test-environment"
	services, _ := realService(t, name)
	environments, err := machine.EnvironmentsOf(services)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{nil, {"P=a b=c", "=C:=C:\\x", "Q=é%PATH%"}, {"Q=z"}, nil, nil} {
		if err := environments.SetEnvironment(name, want); err != nil {
			t.Fatal(err)
		}
		if got, err := environments.Environment(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("read back %q, %v, want %q", got, err, want)
		}
		if err := services.Do(t.Context(), name, machine.Restart); err != nil {
			t.Errorf("with %q: %v", want, err)
		}
	}
	if _, _, err := openKey(t, name).GetStringsValue("Environment"); !errors.Is(err, registry.ErrNotExist) {
		t.Errorf("an empty list remains, with which no service starts: %v", err)
	}
}

// TestServiceFindsItsEnvironment: the service is started with the last entries.
func TestServiceFindsItsEnvironment(t *testing.T) {
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		require.Missing(t, "a service manager that gives services their environment: that of wine does not")
	}
	const name = "machineadm-test-start"
	services, seen := realService(t, name)
	environments, err := machine.EnvironmentsOf(services)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"MACHINEADM_P=a b=c", "MACHINEADM_Q=é"}, {"MACHINEADM_Q=z"}, nil} {
		err := errors.Join(environments.SetEnvironment(name, want), services.Do(t.Context(), name, machine.Restart))
		if err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(seen(), func(entry string) bool { return !strings.HasPrefix(entry, "MACHINEADM_") })
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("started with %q, want %q", got, want)
		}
	}
}

// TestServiceEnvironmentOfOthers: values that other programs wrote are read completely, or refused.
func TestServiceEnvironmentOfOthers(t *testing.T) {
	const name = "machineadm-test-others"
	services, _ := realService(t, name)
	environments, err := machine.EnvironmentsOf(services)
	if err != nil {
		t.Fatal(err)
	}
	key := openKey(t, name)
	for text, want := range map[string][]string{
		"A=1\x00B=2\x00\x00": {"A=1", "B=2"}, "A=1\x00B=2\x00": {"A=1", "B=2"}, "A=1\x00B=2": {"A=1", "B=2"}, "\x00\x00": nil, "": nil,
	} {
		set(t, key, registry.MULTI_SZ, text)
		if got, err := environments.Environment(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
	set(t, key, registry.SZ, "canary\x00")
	_, err = environments.Environment(name)
	failure, ok := errors.AsType[*machine.ServiceError](err)
	if !ok || !strings.Contains(failure.Hint, `Services\`+name) || strings.Contains(err.Error(), "canary") {
		t.Errorf("a value of another type: %v", err)
	}
}

func TestServiceEnvironmentIsRefused(t *testing.T) {
	m, closeMachine, err := machine.New("", "", target.Target{OS: "windows"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeMachine(); err != nil {
			t.Error(err)
		}
	})
	environments, err := machine.EnvironmentsOf(m.Services)
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"machineadm-is-not-there", `..\Tcpip`, ""} {
		if _, err := environments.Environment(unit); err == nil {
			t.Errorf("the environment of %q was read", unit)
		}
		if err := environments.SetEnvironment(unit, []string{"A=1"}); err == nil {
			t.Errorf("the environment of %q was set", unit)
		}
	}
	for _, entries := range [][]string{{""}, {"A=1\x00B=2"}} {
		if err := environments.SetEnvironment("machineadm-is-not-there", entries); !errors.Is(err, os.ErrInvalid) {
			t.Errorf("%q: %v", entries, err)
		}
	}
}

func openKey(t *testing.T, name string) registry.Key {
	t.Helper()
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SYSTEM\CurrentControlSet\Services\`+name, registry.QUERY_VALUE|registry.SET_VALUE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := key.Close(); err != nil {
			t.Error(err)
		}
	})
	return key
}

// set writes a raw value, which package registry cannot for a list.
func set(t *testing.T, key registry.Key, kind uint32, text string) {
	t.Helper()
	name, err := windows.UTF16PtrFromString("Environment")
	if err != nil {
		t.Fatal(err)
	}
	units := make([]uint16, 0, len(text)+1)
	for _, r := range text { // ASCII only
		units = append(units, uint16(r))
	}
	call := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegSetValueExW")
	code, _, _ := call.Call(uintptr(key), uintptr(unsafe.Pointer(name)), 0, uintptr(kind),
		uintptr(unsafe.Pointer(unsafe.SliceData(units))), uintptr(2*len(units)))
	if code != 0 {
		t.Fatal(windows.Errno(code))
	}
}
