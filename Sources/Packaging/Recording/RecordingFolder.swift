import LibC
package import Rooms
package import ServerConfiguration
import Support

/// The folder of recordings (or snapshots) and its file names: `<app>/<stream>/<start>-<id>.mp4`. A value; methods that touch the disk
/// block.
package struct RecordingFolder: Sendable {
    package let path: String

    /// A failed system call.
    package struct Failure: Error, CustomStringConvertible {
        package let operation: String
        package let path: String
        package let code: Int32
        package var description: String { "\(self.operation) \(self.path): \(errorText(self.code))" }
    }

    /// Bytes of a peer's name that a file name keeps.
    private static let longestName = 64

    package init(_ config: ServerConfig) { self.init(path: config.recording.directory ?? "\(config.data.directory)/recordings") }

    package init(path: String) { self.path = path }

    /// Path of a new recording, relative to the folder.
    package static func file(of stream: StreamPath, startedAt ms: Int64, id: String, type: String = "mp4") -> String {
        let time = Instant.secondsText(ms).filter { $0 != "-" && $0 != ":" }
        return "\(self.safe(stream.app))/\(self.safe(stream.name))/\(time)-\(id).\(type)"
    }

    /// Makes a peer's name safe for every file system. A hash keeps changed names distinct.
    static func safe(_ name: String) -> String {
        let text = String(
            decoding: name.utf8.prefix(self.longestName).map { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
                    UInt8(ascii: "-"), UInt8(ascii: "_"):
                    byte
                default: UInt8(ascii: "_")
                }
            }, as: UTF8.self)
        guard text != name || name.isEmpty else { return text }
        // FNV-1a. Need not resist attackers, who could at most mix their files with each other's, under ids that we choose.
        let hash = name.utf8.reduce(UInt64(14_695_981_039_346_656_037)) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
        return "\(text)~\(String(hash, radix: 16))"
    }

    package func absolute(_ file: String) -> String { "\(self.path)/\(file)" }

    /// Creates the parent folders of this file, accessible to their owner only.
    package func prepare(for file: String) throws(Failure) {
        var path = ""
        let parts = self.absolute(file).split(separator: "/", omittingEmptySubsequences: false).dropLast()
        for (index, part) in parts.enumerated() {
            path += index == 0 ? String(part) : "/\(part)"
            guard !path.isEmpty else { continue }
            guard mkdir(path, 0o700) != 0 else { continue }
            let code = errno
            // It exists, or cannot be created by us, like the root of a read-only file system.
            var status = stat()
            guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                throw Failure(operation: "create folder", path: path, code: code)
            }
        }
    }

    /// Free bytes for a user without privileges. Nil when neither the folder nor a parent exists.
    package var freeBytes: Int64? {
        var path = self.path
        while true {
            var status = statvfs()
            if statvfs(path.isEmpty ? "." : path, &status) == 0 {
                let (bytes, overflow) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
                return overflow ? .max : bytes
            }
            guard !path.isEmpty, path != "/" else { return nil }
            path = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? ""
        }
    }

    /// The file's size in bytes; nil when there is no such file.
    package func size(of file: String) -> Int64? {
        var status = stat()
        guard stat(self.absolute(file), &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(status.st_size)
    }

    /// Removes a file, and the stream's folder with its last file. A missing file is no error.
    package func remove(_ file: String) throws(Failure) {
        let path = self.absolute(file)
        guard unlink(path) == 0 || errno == ENOENT else { throw Failure(operation: "remove", path: path, code: errno) }
        unlink(path + ".tmp")
        if let slash = path.lastIndex(of: "/") { rmdir(String(path[..<slash])) }
    }
}
