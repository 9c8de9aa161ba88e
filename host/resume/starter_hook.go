package resume

import (
	"context"

	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/internal/proctree"
)

// hooked is a Starter that calls the init hook of the operating system.
type hooked struct {
	hook *launch.InitHook
	tree *proctree.Tree
	argv []string
}

// NewHookStarter returns a Starter of argv by the init hook. tree is that of this process, or nil.
func NewHookStarter(hook *launch.InitHook, tree *proctree.Tree, argv []string) Starter {
	return &hooked{hook: hook, tree: tree, argv: argv}
}

// Install implements Starter.
func (h *hooked) Install(ctx context.Context) error {
	_, err := h.hook.Call(ctx, h.tree, launch.HookResumeInstall, h.argv...)
	return err
}

// Remove implements Starter.
func (h *hooked) Remove(ctx context.Context) error {
	_, err := h.hook.Call(ctx, h.tree, launch.HookResumeRemove)
	return err
}
