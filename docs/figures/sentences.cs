Muž s červeným kloboukem jede na kole parkem.
Dvě děti si hrají na pláži s míčem.
