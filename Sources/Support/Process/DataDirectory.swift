import LibC

/// The folder of a server's persistent data.
package enum DataDirectory {
    /// Creates the folder for its owner only, and checks that it is writable. Blocks; for start-up.
    package static func prepare(_ path: String) throws {
        // One level at a time: the error names the one that failed, with the system's message.
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
        // Not by `stat`, which some builds resolve to another module.
        guard let folder = opendir(path) else {
            throw DataDirectoryError(description: "the data directory \(path) is not a directory (setting data.directory)")
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
