#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The folder for what a server keeps on disk.
package enum DataDirectory {
    /// Makes the folder, readable by its owner alone, and checks that files can be made in it. Blocks; for start-up.
    package static func prepare(_ path: String) throws {
        let files = FileManager.default
        do {
            try files.createDirectory(atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        } catch {
            throw DataDirectoryError(description: "cannot make the data directory \(path): \(error) (setting data.directory)")
        }
        guard files.isWritableFile(atPath: path) else {
            throw DataDirectoryError(description: "the data directory \(path) is not writable (setting data.directory)")
        }
    }
}

struct DataDirectoryError: Error, CustomStringConvertible {
    let description: String
}
