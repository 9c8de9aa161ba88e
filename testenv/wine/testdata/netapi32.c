// A stand-in for netapi32.dll, which wine has without the functions that join a domain. It keeps the membership of the machine in
// C:\netapi and records there what the functions are called with: of the password, whether it is PASSWORD.
#include <windows.h>
#include <stdio.h>

#define EXPORT __declspec(dllexport) DWORD WINAPI

// The codes in C:\netapi\code that Windows does not have: the process ends before or after the function had its effect.
enum { KILL_BEFORE = 100001, KILL_AFTER = 100002 };

static void record(const char *function, const char *format, ...) {
	FILE *log = fopen("C:\\netapi\\log", "ab");
	if (!log) return;
	va_list arguments;
	va_start(arguments, format);
	fprintf(log, "%s", function);
	vfprintf(log, format, arguments);
	va_end(arguments);
	fputs("\n", log);
	fclose(log);
}

static const char *compare(const WCHAR *password) {
	if (!password) return "none";
	return lstrcmpW(password, PASSWORD) ? "wrong" : "right";
}

static const WCHAR *text(const WCHAR *value) { return value ? value : L"none"; }

static void put(const char *name, const char *content) {
	FILE *file = fopen(name, "w");
	if (!file) return;
	fputs(content, file);
	fclose(file);
}

// finish ends a function: with the code of the file, which is then used up, or with success and its effect.
static DWORD finish(const char *file, const char *content) {
	DWORD code = 0;
	FILE *in = fopen("C:\\netapi\\code", "r");
	if (in) {
		if (fscanf(in, "%lu", &code) != 1) code = 0;
		fclose(in);
		DeleteFileA("C:\\netapi\\code");
	}
	if (code == KILL_BEFORE) TerminateProcess(GetCurrentProcess(), 1);
	if (code && code != KILL_AFTER) return code;
	if (content) put(file, content);
	else DeleteFileA(file);
	if (code) TerminateProcess(GetCurrentProcess(), 1);
	return 0;
}

// domain reads the names of the domain that the machine is a member of.
static BOOL domain(WCHAR netbios[64], WCHAR dns[64]) {
	FILE *file = fopen("C:\\netapi\\domain", "r");
	if (!file) return FALSE;
	BOOL ok = fwscanf(file, L"%63ls %63ls", netbios, dns) == 2;
	fclose(file);
	return ok;
}

static WCHAR *copy(const WCHAR *value) {
	WCHAR *result = HeapAlloc(GetProcessHeap(), 0, (lstrlenW(value) + 1) * sizeof *result);
	return lstrcpyW(result, value);
}

EXPORT NetGetJoinInformation(LPCWSTR server, LPWSTR *name, DWORD *status) {
	WCHAR netbios[64], dns[64];
	BOOL member = domain(netbios, dns);
	*name = copy(member ? netbios : L"WORKGROUP");
	*status = member ? 3 : 2;
	return 0;
}

EXPORT NetApiBufferFree(void *buffer) { return !HeapFree(GetProcessHeap(), 0, buffer); }

struct role { ULONG role, flags; LPWSTR netbios, dns, forest; GUID id; };

EXPORT DsRoleGetPrimaryDomainInformation(LPCWSTR server, DWORD level, struct role **result) {
	WCHAR netbios[64], dns[64];
	if (level != 1 || !domain(netbios, dns)) return ERROR_INVALID_PARAMETER;
	struct role *r = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof *r);
	r->role = 3;
	r->netbios = copy(netbios);
	r->dns = r->forest = copy(dns);
	*result = r;
	return 0;
}

__declspec(dllexport) void WINAPI DsRoleFreeMemory(struct role *r) {
	HeapFree(GetProcessHeap(), 0, r->netbios);
	HeapFree(GetProcessHeap(), 0, r->dns);
	HeapFree(GetProcessHeap(), 0, r);
}

EXPORT NetJoinDomain(LPCWSTR server, LPCWSTR to, LPCWSTR unit, LPCWSTR account, LPCWSTR password, DWORD flags) {
	record("NetJoinDomain", " server=%ls domain=%ls unit=%ls account=%ls password=%s flags=0x%lx", text(server), text(to), text(unit),
		text(account), compare(password), flags);
	return finish("C:\\netapi\\domain", "AD ad.example.com");
}

EXPORT NetUnjoinDomain(LPCWSTR server, LPCWSTR account, LPCWSTR password, DWORD flags) {
	record("NetUnjoinDomain", " server=%ls account=%ls password=%s flags=0x%lx", text(server), text(account), compare(password), flags);
	return finish("C:\\netapi\\domain", NULL);
}

// The file next has the domain of which the machine is a member from its next boot on.
EXPORT NetRequestOfflineDomainJoin(const BYTE *data, DWORD size, DWORD options, LPCWSTR windows) {
	char hex[65] = "";
	for (DWORD i = 0; i < size && i < 32; i++) sprintf(hex + 2 * i, "%02x", data[i]);
	record("NetRequestOfflineDomainJoin", " data=%s options=0x%lx windows=%ls", hex, options, text(windows));
	return finish("C:\\netapi\\next", "AD ad.example.com");
}
