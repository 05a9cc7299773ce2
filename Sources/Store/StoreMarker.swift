import LibC

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A file in a data directory whose server keeps its rooms in a database elsewhere. Commands that know only the directory find it, and do not
/// take a store there for the server's. Blocks.
package enum StoreMarker {
    private static func file(in directory: String) -> String { "\(directory)/database" }

    /// Writes or removes the file, as the location is. Best effort.
    package static func set(_ location: StoreLocation, in directory: String) {
        let path = self.file(in: directory)
        switch location {
        case .folder: unlink(path)
        case .postgres(let location):
            guard self.database(of: directory) != location.description else { return }
            _ = FileManager.default.createFile(
                atPath: path, contents: Data("\(location)\n".utf8), attributes: [.posixPermissions: 0o600])
        }
    }

    /// The database's address without user and password; nil if the directory's server keeps its rooms in the directory.
    package static func database(of directory: String) -> String? {
        guard let data = FileManager.default.contents(atPath: self.file(in: directory)) else { return nil }
        let line = String(decoding: data, as: UTF8.self).split(separator: "\n").first.map(String.init)
        return line ?? "a database"
    }
}
