"""A private Slurm of one host for tests: its own key, ports and folders, no cgroups, no systemd."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue")
SETTINGS = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
SlurmctldPort={ports[0]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=1
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=3600
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=main Nodes=n1 Default=YES MaxTime=INFINITE State=UP
"""


def is_installed() -> bool:
    os.environ["PATH"] += os.pathsep + "/usr/sbin"
    return os.geteuid() == 0 and all(map(shutil.which, PROGRAMS))


class Slurm:
    """A cluster of one node. Slurm's commands use it when they are run with `environment`."""

    def __init__(self, folder: Path):
        for name in ("", "state", "spool", "munge"):
            (folder / name).mkdir(mode=0o755, exist_ok=True)
        (folder / "munge").chmod(0o700)
        self._folder, self._processes = folder, []
        sockets = [socket.socket() for _ in range(2)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
        for one in sockets:
            one.close()
        config = folder / "slurm.conf"
        host = socket.gethostname().split(".")[0]
        config.write_text(SETTINGS.format(host=host, folder=folder, ports=ports))
        self.environment = {**os.environ, "SLURM_CONF": str(config)}

    def start(self) -> None:
        key, folder = self._folder / "munge" / "key", self._folder
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        files = {"key-file": key, "socket": folder / "munge.socket", "pid-file": folder / "munged.pid"}
        files |= {"log-file": folder / "munge" / "log", "seed-file": folder / "munge" / "seed"}
        self._daemon("munged", "--foreground", "--force", *(f"--{name}={path}" for name, path in files.items()))
        self.wait_for(lambda: (folder / "munge.socket").exists(), "munged")
        self._daemon("slurmctld", "-D", "-i")
        self._daemon("slurmd", "-D", "-N", "n1")
        self.wait_for(lambda: self.run("sinfo", "-h", "-o", "%T").strip() == "idle", "an idle node")

    def _daemon(self, *command: str) -> None:
        log = open(self._folder / f"{command[0]}.out", "w")
        process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)
        self._processes.append(process)

    def run(self, *command: str) -> str:
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return done.stdout

    def states(self, job: str) -> set[str]:
        """Return the states of a job's tasks."""
        return set(self.run("squeue", "-h", "-r", "-a", "-t", "all", "-j", job, "-o", "%T").split())

    def wait_for(self, is_true, what: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not is_true():
            assert time.monotonic() < end, f"waited {seconds} s for {what}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(f"{path}:\n{path.read_text()[-1500:]}" for path in self._folder.glob("*.log"))

    def stop(self) -> None:
        self.run("scancel", "--quiet", "--user=root")
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
