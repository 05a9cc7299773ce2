import Foundation
import NIOCore
import NIOPosix
import TestSupport

/// nginx with its RTMP module, in a folder and on a port of its own.
struct Nginx: Sendable {
    let port: Int
    let process: ClientProcess
    private let log: String

    /// Waits until nginx has admitted this many players.
    func players(_ count: Int) async throws {
        try await eventually("\(count) players at nginx") {
            try String(contentsOfFile: self.log, encoding: .utf8).split(separator: "\n").count { $0.contains("play: name=") } >= count
        }
    }

    var url: String { "rtmp://127.0.0.1:\(self.port)" }

    /// Apps: `live` accepts anything, `ends` notifies players when a publisher leaves, `idle` drops one that sends nothing for three seconds, `closed`
    /// denies everything.
    private static func settings(port: Int, directory: URL) -> String {
        """
        load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
        daemon off;
        master_process off;
        worker_processes 1;
        pid \(directory.path)/nginx.pid;
        error_log \(directory.path)/error.log info;
        events { worker_connections 256; }
        rtmp {
            access_log off;
            server {
                listen 127.0.0.1:\(port);
                listen [::1]:\(port);
                ping 30s;
                application live { live on; }
                application ends { live on; idle_streams off; publish_notify on; }
                application idle { live on; drop_idle_publisher 3s; }
                application closed { live on; deny publish all; deny play all; }
            }
        }
        """
    }

    /// Runs nginx until the body is done.
    static func run<Result>(port: Int? = nil, _ body: (Nginx) async throws -> Result) async throws -> Result {
        try await Fixture.withDirectory { directory in
            let taken: Int
            if let port { taken = port } else { taken = try await FreePort.reserve() }
            let nginx = try await Self.start(port: taken, directory)
            defer { nginx.process.send(SIGKILL) }
            return try await body(nginx)
        }
    }

    private static func start(port: Int, _ directory: URL) async throws -> Nginx {
        let file = directory.appendingPathComponent("nginx.conf")
        try Data(Self.settings(port: port, directory: directory).utf8).write(to: file)
        let process = try ClientProcess(["nginx", "-p", directory.path, "-c", file.path, "-e", "\(directory.path)/early.log"])
        let nginx = Nginx(port: port, process: process, log: "\(directory.path)/error.log")
        do {
            try await eventually("nginx") {
                guard process.isRunning else { throw TimedOut(description: "nginx ended: \(process.errorsSoFar)") }
                return await Self.answers(port)
            }
        } catch {
            process.send(SIGKILL)
            throw error
        }
        return nginx
    }

    private static func answers(_ port: Int) async -> Bool {
        do {
            try await ClientBootstrap(group: Loops.group).connect(host: "127.0.0.1", port: port).get().close()
            return true
        } catch {
            return false
        }
    }
}
