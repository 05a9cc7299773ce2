import CFileStatus

/// When a file was last written.
package enum FileTime {
    /// Seconds since 1970; nil when there is no such file.
    package static func modified(_ path: String) -> Int64? {
        let seconds = earshot_modified(path)
        return seconds < 0 ? nil : seconds
    }
}
