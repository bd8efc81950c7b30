"""The program serving on a free port, for the tests and measurements that drive it."""

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request


class Server:
    def __init__(self, program, model, *options, **environment):
        self.process = subprocess.Popen([program, "serve", model, "--port", "0", "--json", *options],
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.port = json.loads(self.process.stdout.readline())["port"]
        self.url = f"http://127.0.0.1:{self.port}"

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return answer.read().decode()

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def complete(self, prompt, **options):
        """The text that goes on with a prompt, greedily."""
        body = {"prompt": prompt, "temperature": 0, **options}
        return self.post("/v1/completions", body)["choices"][0]["text"]

    def begin(self, body, path="/v1/completions"):
        """A connection on which a request has been sent; the caller reads the answer, or goes away."""
        text = json.dumps(body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port))
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        return connection

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics"), re.M)[1])

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


def wait_for(condition, seconds=120.0):
    """Seconds until the condition held; patient, for the machine may be busy."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "it never came true"
        time.sleep(0.002)
    return time.monotonic() - begun
