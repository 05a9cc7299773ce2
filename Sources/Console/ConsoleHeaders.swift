import HTTPTypes

/// The security headers of the console's pages. Values.
enum ConsoleHeaders {
    /// Only the server's own files, no inline script or style, no other site, no frame.
    private static let policy = [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob: data:", "media-src 'self' blob:",
        "connect-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ].joined(separator: "; ")

    static func fenced(_ fields: HTTPFields) -> HTTPFields {
        var fields = fields
        fields[.contentSecurityPolicy] = Self.policy
        fields[.xContentTypeOptions] = "nosniff"
        for (name, value) in [
            ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
        ] {
            if let name = HTTPField.Name(name) { fields[name] = value }
        }
        return fields
    }
}
