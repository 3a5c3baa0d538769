#!/usr/bin/env python3
"""Attaches to servers again and again while they work: no request may fail. Needs root.

HEAP_PROFILE=... PYTHONPATH=tests/e2e:... servers_stress.py [--cycles N] [SERVER...]

Servers that are not installed are left out and named. Ends with 1 when a request failed, a process died or kept changed
code.
"""

import argparse
import glob
import http.client
import os
import pwd
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

from running_process import MAY_ATTACH, Engine, changed_code_bytes, wait_until

NODE = """
const http = require('http');
const kept = [];
http.createServer((request, response) => {
  const text = JSON.stringify({path: request.url, numbers: Array.from({length: 300}, (_, i) => i * 7)});
  if (kept.push(Buffer.from(text)) > 2000) kept.splice(0, 1000);
  response.end(text);
}).listen(PORT, '127.0.0.1');
"""
PYTHON = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        text = json.dumps({"path": self.path, "numbers": list(range(300))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *arguments):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Serve {
  public static void main(String[] arguments) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", PORT), 64);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", exchange -> {
      byte[] text = ("path " + exchange.getRequestURI() + " " + "x".repeat(3000)).getBytes();
      exchange.sendResponseHeaders(200, text.length);
      exchange.getResponseBody().write(text);
      exchange.close();
    });
    server.start();
  }
}
"""
NGINX = """
worker_processes 2;
pid DIRECTORY/pid;
error_log DIRECTORY/error.log;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path DIRECTORY/body; proxy_temp_path DIRECTORY/proxy; fastcgi_temp_path DIRECTORY/fastcgi;
  uwsgi_temp_path DIRECTORY/uwsgi; scgi_temp_path DIRECTORY/scgi;
  server { listen 127.0.0.1:PORT; root DIRECTORY/www; gzip on; gzip_types *; }
}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def descendants(pid):
    """The process and all that it has started, itself first."""
    family = [pid]
    for parent in family:
        for path in glob.glob(f"/proc/{parent}/task/*/children"):
            try:
                with open(path) as file:
                    family.extend(int(child) for child in file.read().split())
            except OSError:  # it has just ended
                pass
    return family


class HttpLoad:
    """Requests from a few threads, half of them with a connection each."""

    def __init__(self, port):
        self.port, self.is_over, self.requests, self.failures = port, False, 0, []
        self.threads = [threading.Thread(target=self.ask, args=(i % 2 == 0,)) for i in range(4)]
        for thread in self.threads:
            thread.start()

    def ask(self, keeps_connection):
        connection = None
        while not self.is_over:
            try:
                if connection is None:
                    connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                connection.request("GET", "/index.html")
                response = connection.getresponse()
                body = response.read()
                if response.status != 200 or not body:
                    self.failures.append(f"status {response.status}")
                if not keeps_connection:
                    connection.close()
                    connection = None
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                connection = None
            self.requests += 1

    def finish(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()
        return self.requests, self.failures


class CommandLoad:
    """A load generator that is a program; it runs as often as there is time."""

    def __init__(self, command, is_good, user=None):
        self.command, self.is_good, self.user = command, is_good, user
        self.is_over, self.requests, self.failures = False, 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.is_over:
            result = subprocess.run(self.command, capture_output=True, text=True, user=self.user, cwd="/")
            self.requests += 1
            if result.returncode != 0 or not self.is_good(result.stdout + result.stderr):
                self.failures.append(result.stdout[-500:] + result.stderr[-500:])

    def finish(self):
        self.is_over = True
        self.thread.join()
        return self.requests, self.failures


class Server:
    """One program that serves, in a directory of its own."""

    needs = None  # program

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="hpd_server_")
        os.chmod(self.directory, 0o755)
        self.port = free_port()
        self.process = subprocess.Popen(self.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        **self.options())
        wait_until(self.listens)

    def options(self):
        return {}

    def listens(self):
        assert self.process.poll() is None, "it does not start"
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w") as file:
            file.write(text.replace("PORT", str(self.port)).replace("DIRECTORY", self.directory))
        return path

    def load(self):
        return HttpLoad(self.port)

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)


class Nginx(Server):
    needs = "nginx"

    def command(self):
        os.mkdir(os.path.join(self.directory, "www"))
        self.write("www/index.html", "text " * 5000)
        return ["nginx", "-g", "daemon off;", "-c", self.write("nginx.conf", NGINX)]


class Redis(Server):
    needs = "redis-benchmark"

    def command(self):
        return ["redis-server", "--port", str(self.port), "--save", "", "--dir", self.directory]

    def load(self):
        return CommandLoad(["redis-benchmark", "-p", str(self.port), "-q", "-n", "20000", "-r", "5000", "-d", "200",
                            "-t", "set,get,lpush,hset"], lambda text: "rror" not in text)


class Postgres(Server):
    needs = "pgbench"

    def command(self):
        self.binaries = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.user = pwd.getpwnam("postgres").pw_uid
        os.chown(self.directory, self.user, -1)
        self.data = os.path.join(self.directory, "data")
        subprocess.run([f"{self.binaries}/initdb", "-D", self.data, "-A", "trust"], check=True, user=self.user,
                       stdout=subprocess.DEVNULL, cwd="/")
        return [f"{self.binaries}/postgres", "-D", self.data, "-p", str(self.port), "-k", self.directory, "-c",
                "fsync=off"]

    def options(self):
        return {"user": self.user, "cwd": "/"}

    def load(self):
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        wait_until(lambda: subprocess.run(["pgbench", *where, "-i", "-q", "postgres"], capture_output=True, cwd="/")
                   .returncode == 0)
        return CommandLoad(["pgbench", *where, "-C", "-c", "4", "-T", "2", "postgres"],
                           lambda text: "failed transactions: 0 " in text)


class Node(Server):
    needs = "node"

    def command(self):
        return ["node", self.write("serve.js", NODE)]


class Python(Server):
    needs = "python3"

    def command(self):
        return ["/usr/bin/python3", self.write("serve.py", PYTHON)]


class Java(Server):
    needs = "javac"

    def command(self):
        subprocess.run(["javac", "-d", self.directory, self.write("Serve.java", JAVA)], check=True)
        return ["java", "-cp", self.directory, "Serve"]


SERVERS = {"nginx": Nginx, "redis": Redis, "postgres": Postgres, "node": Node, "python": Python, "java": Java}


def torment(name, cycles):
    """Problems of one server, one line each."""
    server = SERVERS[name]()
    problems = []
    stops = []
    load = server.load()
    try:
        with Engine() as engine:
            for _ in range(cycles):
                pids = descendants(server.process.pid)
                attached = engine.attach(",".join(map(str, pids)), 100, ["-q"])
                if attached.stats is None:
                    problems.append(f"not attached: {attached.result.stderr}")
                else:
                    stops.append((attached.stats["attach_all_threads_us"], attached.stats["attach_threads"]))
        requests, failures = load.finish()
        problems += [f"failed: {failure}" for failure in failures]
        if server.process.poll() is not None:
            problems.append(f"died with {server.process.returncode}")
        for pid in descendants(server.process.pid):
            try:
                if changed_code_bytes(pid) != 0:
                    problems.append(f"process {pid} has changed code")
            except OSError:  # a worker that has just ended
                pass
    finally:
        load.finish()
        server.close()
    longest = statistics.median(stop for stop, _ in stops) / 1000 if stops else 0
    print(f"{name}: {requests} requests, {len(stops)} recordings, {max((t for _, t in stops), default=0)} threads, "
          f"all threads stopped {longest:.2f} ms (median of the longest)", flush=True)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("servers", nargs="*", default=list(SERVERS))
    arguments = parser.parse_args()
    count = 0
    for name in arguments.servers:
        if not shutil.which(SERVERS[name].needs):
            print(f"{name}: left out, {SERVERS[name].needs} is not installed", flush=True)
            continue
        for problem in torment(name, arguments.cycles):
            print(f"  PROBLEM: {name}: {problem}", flush=True)
            count += 1
    print(f"{count} problems")
    return 1 if count else 0


if __name__ == "__main__":
    if not MAY_ATTACH:
        print("cannot torment servers: attaching is not allowed here; run it as root, outside of containers")
        sys.exit(0)
    sys.exit(main())
