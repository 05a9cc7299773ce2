import CommandSupport
import LibC
import ServerConfiguration
import ServerData
import Store
import Support

/// The subject of the checks on this machine: the settings, and the server that uses their data directory. A plain value.
struct LocalSubject: Sendable {
    let config: ServerConfig
    /// The file that the settings come from, if any.
    let file: String?
    /// The process of the running server; 0 for one in another process namespace, nil when none runs.
    let serverProcess: Int?
    /// What the running server listens on, by itself; nil when none runs, or one that does not say.
    let served: BoundAddresses?

    var directory: String { self.config.data.directory }
    var isRunning: Bool { self.serverProcess != nil }
    /// Whether a server has made its store of rooms in the directory.
    var hasStore: Bool {
        guard case .folder(let folder) = StoreLocation(self.config) else { return false }
        return StoreFolder(directory: folder, secrets: []).hasStore
    }

    /// Reads proc(5). Blocks.
    init(config: ServerConfig, file: String?) {
        self.config = config
        self.file = file
        let process = Self.holder(ofLockIn: config.data.directory)
        self.serverProcess = process
        self.served = process.flatMap { process in
            // The file of an earlier server names another process.
            ServedAddresses(in: config.data.directory).flatMap { process == 0 || $0.process == process ? $0.addresses : nil }
        }
    }

    /// The process that holds flock(2) on the directory's lock file: one line of /proc/locks names it and the file's inode.
    private static func holder(ofLockIn directory: String) -> Int? {
        let descriptor = open("\(directory)/earshot.lock", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard let inode = FileStatus(descriptor: descriptor)?.inode, let locks = SmallFile.text("/proc/locks") else { return nil }
        for line in locks.split(separator: "\n") {
            // "1: FLOCK  ADVISORY  WRITE 2741 fe:01:131074 0 EOF"
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "FLOCK", words[5].split(separator: ":").last == "\(inode)" else { continue }
            return max(0, Int(words[4]) ?? 0)
        }
        // Not every file system shows its inodes there. A lock attempt could make a server that starts at this very moment fail once; it tries again.
        return flock(descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK ? 0 : nil
    }

    /// A listener, by the name of its setting.
    enum Listener: String, CaseIterable {
        case rtmp = "rtmp.listen"
        case http = "http.listen"
        case rtmps = "rtmps.listen"
        case https = "https.listen"
    }

    /// The address of the settings; nil for a listener that they switch off.
    func configured(_ listener: Listener) -> HostPort? {
        switch listener {
        case .rtmp: self.config.rtmp.listen
        case .http: self.config.http.listen
        case .rtmps: self.config.rtmps.address
        case .https: self.config.httpsAddress
        }
    }

    /// The address where the running server says that it listens; nil if it does not say.
    func running(_ listener: Listener) -> HostPort? {
        switch listener {
        case .rtmp: self.served?.rtmp
        case .http: self.served?.http
        case .rtmps: self.served?.rtmps
        case .https: self.served?.https
        }
    }

    /// Where to find the server: by itself, otherwise by its settings.
    func address(_ listener: Listener) -> HostPort? { self.running(listener) ?? self.configured(listener) }
}

/// Small files, such as those of proc(5). Blocks.
enum SmallFile {
    /// Bytes.
    private static let limit = 1 << 20

    /// The file's text, up to 1 MiB; nil when it cannot be read.
    static func text(_ path: String) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count < self.limit {
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The first number of a file such as /proc/sys/net/core/somaxconn.
    static func number(_ path: String) -> Int? { self.numbers(path).first }

    static func numbers(_ path: String) -> [Int] {
        (self.text(path) ?? "").split { $0 == " " || $0 == "\t" || $0 == "\n" }.compactMap { Int($0) }
    }
}
