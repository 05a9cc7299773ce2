import CommandSupport
import LibC
import ServerConfiguration
import ServerData
import Support

/// Checks files and folders: who may read the secrets, and whether the server can write to its folders. Blocks.
enum FileChecks {
    static func run(_ subject: LocalSubject) -> [DoctorResult] {
        [self.dataDirectory(subject.directory)] + [self.secrets(subject)]
            + [
                self.folder(
                    "recording folder", subject.config.recording.directory ?? "\(subject.directory)/recordings",
                    setting: "recording.directory"),
                self.folder(
                    "snapshot folder", subject.config.snapshots.directory ?? "\(subject.directory)/snapshots",
                    setting: "snapshots.directory"),
            ]
    }

    private static func dataDirectory(_ path: String) -> DoctorResult {
        let name = "data directory"
        guard access(path, F_OK) == 0 else {
            return .warn(
                name, "\(path): \(Console.explain(errno))", "the server makes it at its first start; if it has one already, give --data DIR"
            )
        }
        guard let why = self.whyNotWritable(path) else {
            if let mode = self.mode(path), mode & 0o007 != 0 {
                return .warn(name, "\(path) has mode 0\(String(mode, radix: 8)): others may enter it", "chmod o= \(path)")
            }
            return .pass(name, path)
        }
        return .fail(
            name, "\(path): \(why)", "run the doctor as the server's user; if that one cannot write either: chown -R USER \(path)")
    }

    /// Checks the folder, or the first existing parent, in which the server would create it.
    private static func folder(_ name: String, _ path: String, setting: String) -> DoctorResult {
        var existing = path
        while access(existing, F_OK) != 0, errno == ENOENT, let slash = existing.lastIndex(of: "/"), slash > existing.startIndex {
            existing = String(existing[..<slash])
        }
        if access(existing, F_OK) != 0, errno == ENOENT { existing = path.hasPrefix("/") ? "/" : "." }
        guard let why = self.whyNotWritable(existing) else { return .pass(name, existing == path ? path : "\(path), not made yet") }
        return .fail(
            name, "\(path): \(existing == path ? why : "\(existing): \(why)")", "make it writable for the server's user, or set \(setting)")
    }

    /// The reason why the folder is not writable; nil when it is. Tries a write, because permissions do not show read-only disks, quotas and security
    /// modules.
    private static func whyNotWritable(_ folder: String) -> String? {
        let file = "\(folder)/.earshot-doctor-\(getpid())"
        let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return Console.explain(errno) }
        unlink(file)
        close(descriptor)
        return nil
    }

    /// Permissions of a file or folder; nil when it cannot be opened.
    private static func mode(_ path: String) -> UInt32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return FileStatus(descriptor: descriptor)?.permissions
    }

    private static func secrets(_ subject: LocalSubject) -> DoctorResult {
        let name = "secret files"
        var found = 0
        var open: [String] = []
        var advice: [String] = []
        var isFailure = false
        for file in ServerSecrets.files + [FirstToken.fileName] {
            let path = "\(subject.directory)/\(file)"
            guard let mode = self.mode(path) else { continue }
            found += 1
            guard mode & 0o077 != 0 else { continue }
            isFailure = true
            open.append("\(path) has mode 0\(String(mode, radix: 8))")
            advice.append("chmod 600 \(path)")
        }
        if let path = subject.config.rtmps.key, let mode = self.mode(path) {
            found += 1
            if mode & 0o007 != 0 {
                isFailure = true
                open.append("\(path) (rtmps.key) has mode 0\(String(mode, radix: 8)): others may read it")
                advice.append("chmod o= \(path)")
            }
        }
        if let path = subject.file, self.holdsSecrets(subject.config), let mode = self.mode(path) {
            found += 1
            if mode & 0o007 != 0 {
                open.append("\(path) holds keys and has mode 0\(String(mode, radix: 8))")
                advice.append("chmod o= \(path)")
            }
        }
        guard !open.isEmpty else { return .pass(name, found == 0 ? "none there yet" : "\(found), readable for their owner only") }
        let measured = open.joined(separator: "; ")
        let words = advice.joined(separator: "; ")
        return isFailure ? .fail(name, measured, words + "; if others may have read it, make a new one") : .warn(name, measured, words)
    }

    private static func holdsSecrets(_ config: ServerConfig) -> Bool {
        let credentials = config.credentials
        return [
            credentials.key, credentials.backupKey, credentials.playKey, credentials.jwtKey, config.webhooks.key, config.cluster.key,
        ].contains { $0 != nil }
    }
}
