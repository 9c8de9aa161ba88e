# Downloads the installer of machineadm, which has every plugin, and runs it, as Administrator.
# The digest is trusted, not TLS: a URL can be http.
$version = ''
$urls = @()  # directories of the release, tried in turn
$amd64 = ''  # SHA-256 of machineadm-VERSION-windows-amd64.msi
$to = "$env:ProgramFiles\machineadm"
$waits = 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5, 5, 5  # seconds between rounds

$ErrorActionPreference = 'Stop'
[Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
function Stop-Fetch($Message) {
    [Console]::Error.WriteLine("machineadm-fetch: $Message")
    exit 1
}
if ($env:PROCESSOR_ARCHITECTURE -ne 'AMD64') { Stop-Fetch "no machineadm for $env:PROCESSOR_ARCHITECTURE" }
if ($amd64.Length -ne 64) { Stop-Fetch 'set $amd64 to the SHA-256 of the installer' }
$file = "machineadm-$version-windows-amd64.msi"

# Only Administrators and SYSTEM can write a new directory; one that exists must be so already, which owner and rights show. Of
# those above, no other user may replace a directory.
if (-not (Test-Path -LiteralPath $to)) { New-Item -ItemType Directory -Path $to | Out-Null }
$to = (Get-Item -LiteralPath $to).FullName
$trusted = 'S-1-5-18', 'S-1-5-32-544', 'S-1-3-0', 'S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464'
$replace = 0x500D0040  # GENERIC_WRITE, GENERIC_ALL, Delete, DeleteSubdirectoriesAndFiles, ChangePermissions, TakeOwnership
$write = 0x500D0046  # and WriteData, AppendData
for ($at = $to; $at; $at = [IO.Path]::GetDirectoryName($at)) {
    $acl = Get-Acl -LiteralPath $at
    $owner = $acl.GetOwner([Security.Principal.SecurityIdentifier]).Value
    if ($trusted -notcontains $owner) { Stop-Fetch "$at belongs to ${owner}: make Administrators its owner, or change `$to" }
    foreach ($rule in $acl.GetAccessRules($true, $true, [Security.Principal.SecurityIdentifier])) {
        $rights = if ($at -eq $to) { $write } elseif ($rule.PropagationFlags -band 2) { 0 } else { $replace }  # 2: InheritOnly
        $others = $trusted -notcontains $rule.IdentityReference.Value
        if ($others -and $rule.AccessControlType -eq 'Allow' -and ([int]$rule.FileSystemRights -band $rights)) {
            Stop-Fetch "$($rule.IdentityReference) can change ${at}: remove that right, or change `$to"
        }
    }
}

$temporary = Join-Path $to ".machineadm-fetch.$PID.tmp"  # not .msi: nothing unverified can be started
foreach ($old in Get-ChildItem -LiteralPath $to -Filter '.machineadm-fetch.*.tmp' -Force) {  # of killed runs
    $owner = $old.Name.Split('.')[2]
    if (-not (Get-Process -Id $owner -ErrorAction SilentlyContinue)) { Remove-Item -LiteralPath $old.FullName -Force }
}
function Test-Download($Url) {
    try {
        $request = [Net.WebRequest]::Create("$Url/$file")
        $request.Timeout = $request.ReadWriteTimeout = 60000
        $answer = $request.GetResponse()
        try {
            $in = $answer.GetResponseStream()
            $out = [IO.File]::Create($temporary)
            try {
                $buffer = New-Object byte[] 65536
                while (($n = $in.Read($buffer, 0, $buffer.Length)) -gt 0) {
                    if ($out.Length + $n -gt 268435456) { throw 'it is larger than 256 MiB' }
                    $out.Write($buffer, 0, $n)
                }
                $out.Flush($true)
            } finally { $out.Dispose() }
        } finally { $answer.Close() }
    } catch {
        [Console]::Error.WriteLine("machineadm-fetch: cannot download $Url/${file}: $($_.Exception.Message)")
        $script:left += $Url
        return $false
    }
    if ((Get-FileHash -LiteralPath $temporary -Algorithm SHA256).Hash -eq $amd64) { return $true }
    [Console]::Error.WriteLine("machineadm-fetch: $Url/$file has another SHA-256")
    return $false
}
function Test-Round {
    foreach ($wait in @(0) + $waits) {
        Start-Sleep -Milliseconds ([int]($wait * 1000))
        $script:left = @()
        foreach ($url in $script:urls) {
            if (Test-Download $url) { return $true }
        }
        $script:urls = $script:left
        if ($script:urls.Count -eq 0) { return $false }
    }
    return $false
}
$msi = Join-Path $to $file
try {
    if (-not (Test-Round)) { Stop-Fetch "nothing installed: check `$urls, `$amd64, network, space in $to" }
    Move-Item -LiteralPath $temporary -Destination $msi -Force
    $run = Start-Process -FilePath "$env:SystemRoot\System32\msiexec.exe" -ArgumentList "/i `"$msi`" /qn /norestart" -Wait -PassThru
} finally {
    Remove-Item -LiteralPath $temporary, $msi -Force -ErrorAction SilentlyContinue
}
if ($run.ExitCode -notin 0, 3010) { Stop-Fetch "msiexec ended with $($run.ExitCode): see its log, and docs/fetch.md" }  # 3010: reboot
