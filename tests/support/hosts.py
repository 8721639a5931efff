"""Several hosts on one machine: network namespaces on a bridge, each with a host name and an sshd of its own."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from programs import mpi_environment

BRIDGE, NETWORK = "tdpobr0", "10.201.7"
SSH = """Host {address}
 IdentityFile {folder}/key
 StrictHostKeyChecking no
 UserKnownHostsFile /dev/null
 LogLevel ERROR
"""


def why_not() -> str:
    """Return what is missing, or ''."""
    programs = [name for name in ("ip", "unshare", "ssh", "ssh-keygen", "/usr/sbin/sshd") if not shutil.which(name)]
    if os.geteuid() != 0 or programs:
        return f"needs root{''.join(f', {name}' for name in programs)}: make system-deps"
    tried = subprocess.run(["ip", "netns", "add", "tdpotry"], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "delete", "tdpotry"], capture_output=True)
    return "" if tried.returncode == 0 else f"network namespaces are not allowed here ({tried.stderr.strip()})"


def is_open_mpi(mpirun: str) -> bool:
    """Return whether an mpirun is Open MPI's, and not MPICH's or Intel's."""
    version = subprocess.run([mpirun, "--version"], capture_output=True, text=True).stdout
    return "(Open MPI)" in version


def call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


class Hosts:
    """Hosts on which `mpirun` starts programs."""

    def __init__(self, folder: Path, num: int):
        folder.mkdir(mode=0o700)
        Path("/run/sshd").mkdir(exist_ok=True)
        self._folder, self._num, self._daemons = folder, num, []
        self.addresses = [f"{NETWORK}.{i}" for i in range(1, num + 1)]
        self.hostfile, self.ssh_config = folder / "hostfile", folder / "ssh_config"
        self.hostfile.write_text("".join(f"{address} slots=2\n" for address in self.addresses))
        self.machinefile = folder / "machinefile"  # of MPICH
        self.machinefile.write_text("".join(f"{address}:2\n" for address in self.addresses))
        self.ssh_config.write_text("".join(SSH.format(address=a, folder=folder) for a in self.addresses))

    def start(self) -> None:
        for name in ("key", "host_key"):
            call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self._folder / name))
        call("ip", "link", "add", BRIDGE, "type", "bridge")
        call("ip", "address", "add", f"{NETWORK}.254/24", "dev", BRIDGE)
        call("ip", "link", "set", BRIDGE, "up")
        for i, address in enumerate(self.addresses, start=1):
            inside = ("ip", "netns", "exec", f"tdpo{i}", "ip")
            call("ip", "netns", "add", f"tdpo{i}")
            call("ip", "link", "add", f"tdpov{i}", "type", "veth", "peer", "name", "eth0", "netns", f"tdpo{i}")
            call("ip", "link", "set", f"tdpov{i}", "master", BRIDGE, "up")
            call(*inside, "address", "add", f"{address}/24", "dev", "eth0")
            call(*inside, "link", "set", "eth0", "up")
            call(*inside, "link", "set", "lo", "up")
            self._daemons.append(self._sshd(i, address))
        for address in self.addresses:
            self._wait_for(address)

    def mpirun(self, mpirun: str, num_ranks: int, *command: str) -> list[str]:
        """Return the command that starts a program on that many ranks, by any MPI."""
        if not is_open_mpi(mpirun):
            hosts = ["-f", str(self.machinefile), "-localhost", f"{NETWORK}.254", "-launcher", "ssh"]
            return [mpirun, "-np", str(num_ranks), *hosts, *command]
        launch = [mpirun, "-np", str(num_ranks), "--hostfile", str(self.hostfile), "--map-by", "node"]
        return [*launch, "--bind-to", "none", *command]

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which mpirun reaches the hosts: Open MPI 4, 5 and MPICH."""
        agent, file = f"ssh -F {self.ssh_config}", f"-F {self.ssh_config}"
        names = {"OMPI_MCA_plm_rsh_agent": agent, "PRTE_MCA_plm_ssh_agent": agent, "HYDRA_LAUNCHER_EXTRA_ARGS": file}
        return {**mpi_environment(), **names}

    def _sshd(self, number: int, address: str) -> subprocess.Popen:
        """Start sshd under a host name of its own, by which Open MPI tells hosts apart."""
        options = {
            "AuthorizedKeysFile": self._folder / "key.pub",
            "ListenAddress": address,
            "PidFile": "none",
            "PermitRootLogin": "yes",
            "StrictModes": "no",
            "UsePAM": "no",
        }
        words = " ".join(f"-o {name}={value}" for name, value in options.items())
        script = f"hostname tdpohost{number}; exec /usr/sbin/sshd -D -f /dev/null -h {self._folder}/host_key {words}"
        return subprocess.Popen(["ip", "netns", "exec", f"tdpo{number}", "unshare", "--uts", "bash", "-c", script])

    def _wait_for(self, address: str) -> None:
        for _ in range(100):
            answer = subprocess.run(["ssh", "-F", str(self.ssh_config), address, "true"], capture_output=True)
            if answer.returncode == 0:
                return
            time.sleep(0.1)
        raise RuntimeError(f"no answer from {address}: {answer.stderr.decode()}")

    def stop(self) -> None:
        for daemon in self._daemons:
            daemon.terminate()
            daemon.wait()
        for i in range(1, self._num + 1):
            subprocess.run(["ip", "netns", "delete", f"tdpo{i}"])
        subprocess.run(["ip", "link", "delete", BRIDGE])
