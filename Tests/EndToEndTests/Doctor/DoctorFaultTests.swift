import Foundation
import ServerTestSupport
import TestSupport
import Testing

/// `earshot doctor` names what is wrong with a machine and its settings. Each fault is planted alone, in settings that pass without it.
@Suite struct DoctorFaultTests {
    private static func scene(_ body: (DoctorScene) async throws -> Void) async throws {
        try await Fixture.withDirectory { directory in
            let scene = try await DoctorScene(in: directory)
            try FileManager.default.createDirectory(
                atPath: scene.data, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try await body(scene)
        }
    }

    private static func expect(_ name: String, _ words: String, in run: DoctorRun) {
        #expect(run.status == 1 && run.failed == [name] && run.measured(name).contains(words), "\(run.words)")
    }

    @Test func nothingIsWrong() async throws {
        try await Self.scene { scene in
            let run = try await DoctorRun.run(["--config", try scene.config()])
            #expect(run.isWell, "\(run.words)")
            #expect(run.status(of: "server") == "skip" && run.measured("server").contains("no server uses"), "\(run.words)")
            for name in ["disk speed", "open files", "port rtmp.listen", "FFmpeg", "librtmp", "secret files", "proxies"] {
                #expect(run.status(of: name) != nil && run.status(of: name) != "skip", "\(name) in \(run.words)")
            }
        }
    }

    /// Where a server has run before, one is expected to run, and its store to be readable.
    @Test func aStoppedServerAndItsStore() async throws {
        try await Self.scene { scene in
            let config = try scene.config()
            try await scene.serve(config) { _ in }
            let stopped = try await DoctorRun.run(["--config", config, "--data", scene.data])
            Self.expect("server", "no server uses", in: stopped)
            #expect(stopped.status(of: "store") == "pass", "\(stopped.words)")
            // A page in the middle.
            let store = try FileHandle(forUpdating: URL(fileURLWithPath: "\(scene.data)/earshot.db"))
            try store.seek(toOffset: 3 * 4_096)
            try store.write(contentsOf: Data(repeating: 0xA5, count: 4_096))
            try store.close()
            let damaged = try await DoctorRun.run(["--config", config, "--data", scene.data])
            #expect(damaged.failed.contains("store"), "\(damaged.words)")
        }
    }

    @Test func settings() async throws {
        try await Self.scene { scene in
            let run = try await DoctorRun.run(["--config", try scene.config("relay: {maxBehnd: 3s}"), "--data", scene.data])
            // The ports are then the usual ones, which something on this machine may have.
            #expect(run.status == 1 && run.failed.contains("settings") && run.measured("settings").contains("maxBehnd"), "\(run.words)")
        }
    }

    @Test func publicAddresses() async throws {
        try await Self.scene { scene in
            let open = "rtmp: {listen: \"0.0.0.0:\(scene.ports[0])\"}"
            let run = try await DoctorRun.run(["--config", try scene.config(open, "access: {publishFrom: [any]}")])
            Self.expect("public addresses", "lets everybody push", in: run)
            let play = try await DoctorRun.run(["--config", try scene.config(open, "access: {playFrom: [any]}")])
            #expect(play.isWell && play.status(of: "public addresses") == "warn", "\(play.words)")
            let closed = try await DoctorRun.run(["--config", try scene.config(open)])
            #expect(closed.status(of: "public addresses") == "pass", "\(closed.words)")
        }
    }

    @Test func proxies() async throws {
        try await Self.scene { scene in
            let run = try await DoctorRun.run(["--config", try scene.config("access: {trustedProxies: [0.0.0.0/0]}")])
            Self.expect("proxies", "believes everybody's X-Forwarded-For", in: run)
        }
    }

    @Test func rightsOfKeys() async throws {
        try await Self.scene { scene in
            let made = try await Certificate.make("localhost", in: scene.directory)
            let tls = "rtmps: {listen: \"127.0.0.1:\(scene.ports[2])\", certificate: \(made.certificate), key: \(made.key)}"
            let config = try scene.config(tls, "https: {listen: \"127.0.0.1:\(scene.ports[3])\"}")
            #expect(chmod(made.key, 0o600) == 0)
            #expect(try await DoctorRun.run(["--config", config]).isWell)
            #expect(chmod(made.key, 0o644) == 0)
            Self.expect("secret files", "key.pem (rtmps.key) has mode 0644", in: try await DoctorRun.run(["--config", config]))
        }
        try await Self.scene { scene in
            let file = "\(scene.data)/keys.json"
            #expect(FileManager.default.createFile(atPath: file, contents: Data("{}".utf8), attributes: [.posixPermissions: 0o640]))
            Self.expect("secret files", "keys.json has mode 0640", in: try await DoctorRun.run(["--config", try scene.config()]))
        }
    }

    @Test func certificates() async throws {
        try await Self.scene { scene in
            let made = try await Certificate.make("live.example.com", in: scene.directory)
            #expect(chmod(made.key, 0o600) == 0)
            let tls = "rtmps: {listen: \"127.0.0.1:\(scene.ports[2])\", certificate: \(made.certificate), key: \(made.key)}"
            let https = "https: {listen: \"127.0.0.1:\(scene.ports[3])\"}"
            let right = try scene.config(tls, https, "urls: {rtmps: \"rtmps://live.example.com:1936\"}")
            let good = try await DoctorRun.run(["--config", right])
            #expect(good.isWell && good.measured("certificate's names").contains("covers live.example.com"), "\(good.words)")
            #expect(good.status(of: "certificate's time") == "warn", "two days are left: \(good.words)")
            // The certificate is for two days.
            let late = try await DoctorRun.run(["--config", right], under: try FakeClock.under("+3d"))
            Self.expect("certificate's time", "expired", in: late)
            let wrong = try scene.config(tls, https, "urls: {rtmps: \"rtmps://live.example.org:1936\"}")
            Self.expect("certificate's names", "not for live.example.org", in: try await DoctorRun.run(["--config", wrong]))
        }
    }

    @Test func ports() async throws {
        try await Self.scene { scene in
            let config = try scene.config()
            let taker = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "\(scene.ports[1])"]
            try await ClientProcess.during(taker) { _ in
                try await eventually("the port to be taken") {
                    try await DoctorRun.run(["--config", config]).failed == ["port http.listen"]
                }
                Self.expect("port http.listen", "is taken, by python3", in: try await DoctorRun.run(["--config", config]))
            }
        }
    }

    @Test func openFiles() async throws {
        try await Self.scene { scene in
            let config = try scene.config()
            let few = try await DoctorRun.run(["--config", config], under: ["prlimit", "--nofile=400:400"])
            Self.expect("open files", "400 for a server started from here", in: few)
        }
    }

    @Test func disk() async throws {
        try await Self.scene { scene in
            let full = try scene.config("data: {directory: \"\(scene.data)\", minFree: 1073741824MiB}")
            Self.expect("disk space", "less than data.minFree", in: try await DoctorRun.run(["--config", full]))
            let recordings = try scene.config("recording: {minFree: 1073741824MiB}")
            Self.expect("disk for recordings", "less than recording.minFree", in: try await DoctorRun.run(["--config", recordings]))
        }
    }

    @Test func recordingFolder() async throws {
        try await Self.scene { scene in
            let run = try await DoctorRun.run([
                "--config", try scene.config("recording: {directory: /proc/earshot/recordings, minFree: 0}"),
            ])
            Self.expect("recording folder", "/proc", in: run)
        }
    }

    @Test func clock() async throws {
        try await Self.scene { scene in
            let run = try await DoctorRun.run(["--config", try scene.config()], under: try FakeClock.under("+30y"))
            Self.expect("clock", "decades after", in: run)
        }
    }

    @Test func targets() async throws {
        try await Self.scene { scene in
            let settings = "webhooks: {urls: [\"http://127.0.0.1:\(scene.ports[3])/hook?key=hunter2\"]}"
            let run = try await DoctorRun.run(["--config", try scene.config(settings, "outbound: {allowPrivate: [127.0.0.0/8]}")])
            Self.expect("target webhooks.urls", "connection refused", in: run)
            #expect(!run.words.contains("hunter2"), "\(run.words)")
        }
    }

    @Test func noServer() async throws {
        let run = try await DoctorRun.run(["--server", "http://127.0.0.1:\(try await FreePort.reserve())"])
        #expect(run.status == 2 && run.errors.contains("cannot reach"), "\(run.words)")
    }
}

/// Another time of day for one process: libfaketime.
enum FakeClock {
    static func under(_ offset: String) throws -> [String] {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        let library = folders.map { "\($0)/faketime/libfaketimeMT.so.1" }.first(where: FileManager.default.fileExists)
        return [
            "LD_PRELOAD=\(try library.orThrow())", "FAKETIME=\(offset)", "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1", "env",
        ]
    }
}
