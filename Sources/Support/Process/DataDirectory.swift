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
                        "cannot make the data directory \(path): \(made): \(errorText(errno)) (setting data.directory)")
            }
            made += "/"
        }
        // Does not use `stat`, which some builds resolve to another module.
        guard let folder = opendir(path) else {
            throw DataDirectoryError(description: "the data directory \(path) is not a directory (setting data.directory)")
        }
        closedir(folder)
        guard access(path, W_OK | X_OK) == 0 else {
            throw DataDirectoryError(description: "the data directory \(path) is not writable (setting data.directory)")
        }
    }
}

extension DataDirectory {
    /// The default folder for a server's data, which commands use too. Server and commands agree, wherever they are started.
    package static var standard: String {
        self.standard(isRoot: geteuid() == 0, home: self.variable("HOME"), dataHome: self.variable("XDG_DATA_HOME")) { path in
            access(path, X_OK) == 0
        }
    }

    /// The folder of the system's service.
    private static let service = "/var/lib/earshot"
    private static let here = "./earshot-data"

    /// The first of these that exists and is accessible: the folder here, the service's, the user's. If there is none, the folder to create: for root
    /// the service's. `dataHome` is that of the XDG base directories.
    static func standard(isRoot: Bool, home: String?, dataHome: String?, _ isThere: (String) -> Bool) -> String {
        let mine: String? =
            if let dataHome, dataHome.hasPrefix("/") {
                "\(dataHome)/earshot"
            } else if let home, home.hasPrefix("/"), home != "/" {
                "\(home)/.local/share/earshot"
            } else {
                nil
            }
        if let found = [self.here, self.service, mine].compactMap({ $0 }).first(where: isThere) { return found }
        return isRoot ? self.service : mine ?? self.here
    }

    /// nil when unset or empty.
    private static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }
}

struct DataDirectoryError: Error, CustomStringConvertible {
    let description: String
}
