#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The folder for what a server keeps on disk.
package enum DataDirectory {
    /// Makes the folder, readable by its owner alone, and checks that files can be made in it. Blocks; for start-up.
    package static func prepare(_ path: String) throws {
        // One at a time, so that the error can name the one that failed, in the system's words.
        var made = path.hasPrefix("/") ? "/" : ""
        for part in path.split(separator: "/") {
            made += part
            if mkdir(made, 0o700) != 0, errno != EEXIST {
                throw DataDirectoryError(
                    description:
                        "cannot make the data directory \(path): \(made): \(String(cString: strerror(errno))) (setting data.directory)")
            }
            made += "/"
        }
        // Not by stat, whose module is another one in some builds.
        guard let folder = opendir(path) else {
            throw DataDirectoryError(description: "the data directory \(path) is no folder (setting data.directory)")
        }
        closedir(folder)
        guard access(path, W_OK | X_OK) == 0 else {
            throw DataDirectoryError(description: "the data directory \(path) is not writable (setting data.directory)")
        }
    }
}

struct DataDirectoryError: Error, CustomStringConvertible {
    let description: String
}
